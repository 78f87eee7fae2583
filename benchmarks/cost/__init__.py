"""What it costs: a drift beside the published procedure, kernels, growth, online use, start-up."""
