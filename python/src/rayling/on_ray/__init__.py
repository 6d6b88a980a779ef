"""The gateway of TypeScript drivers on a Ray cluster: `python -m rayling.on_ray`.

A driver starts it as a Ray job. It reserves on Ray what the driver's actors and tasks hold, and
starts agents of the JavaScript runtime on the nodes where something was reserved. All that it makes
belongs to its job, and the job ends with its driver.
"""
