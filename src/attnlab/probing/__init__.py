"""What a trained model's attention explains: experiments on its weights, over the examples of any task."""
