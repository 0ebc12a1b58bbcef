"""What is said of a model of 135M parameters, and of whole generations on a GPU?"""
