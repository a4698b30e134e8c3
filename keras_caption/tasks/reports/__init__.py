"""What tasks print and draw of a trained model."""
