"""How an application is described, in both forms: calls on a builder, pipelines that are values."""
