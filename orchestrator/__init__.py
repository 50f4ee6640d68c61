"""Runs of pipelines: settings, rules, run store, orchestrator, worker, command line."""
