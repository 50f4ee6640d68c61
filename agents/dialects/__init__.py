"""The two dialects in which models are asked to use tools, and their prompts."""
