"""What is trained: the paper's two-layer net, or any torch module with a linear last layer."""
