"""Examples on real input; each folder's README says what it shows."""
