"""Deliberately broken agents, clients and hubs: one defect each, as a small difference to a good one."""
