"""The definition: what an application means, copying whatever user code could share."""
