"""Where a trained run meets data, metrics and geometry."""
