"""The paper's evaluation: which rows a model sees, and how well it does on the rest."""
