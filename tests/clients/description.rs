//! The description that the server gives of itself, held against the server by a program that knows neither.
