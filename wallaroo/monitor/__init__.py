"""What shows a running application: a page, JSON, Prometheus, a terminal."""
