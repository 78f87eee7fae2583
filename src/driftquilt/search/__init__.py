"""Which disparity bound in (0, 2)? Each search trains candidates and keeps every trial."""
