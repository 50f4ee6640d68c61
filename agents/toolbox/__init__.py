"""Tools that come with the package; ``registry`` lists them."""
