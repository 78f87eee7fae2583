"""Values first, drawing after."""
