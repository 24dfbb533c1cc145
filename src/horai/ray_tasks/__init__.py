"""Functions as tasks of a Ray cluster: the worker claims and settles, Ray runs.

    executor       RayFunction: the executor of one job; a task takes a place of the worker like any other call
    tasks          RayTasks: the tasks of a worker, and the driver process that it keeps running
    driver_process the driver as the worker sees it: a process that is started, hears, reports and dies
    messages       the messages between the worker and its driver
    driver         the program of the driver process: it is connected to Ray, submits tasks and follows them
    task           the program of a task: the function of one attempt, in a process of a Ray node
    fates          the outcome of a task that Ray reports as failed

The driver is a process of its own because Ray ends the process of a driver whose node or head is lost. `ray` is imported
only there, and on the nodes of Ray.

A task is a stream: it reports the beginning, the progress and the messages of the function, and its outcome. Ray keeps no
copy of a task and never runs one twice (`max_retries=0`): a lost task is a lost attempt, and Horai's fence decides.

If a part dies:

- The process of a task: the attempt is lost; after two losses it fails as `PROCESS_DIED`.
- A Ray node: the attempts of its tasks are lost.
- The driver, its Ray node, or the head of Ray: all attempts of the worker's tasks are lost. The worker claims no
  instance of these jobs until a new driver is connected.
- The worker: its driver ends, and Ray ends the tasks of a driver that has ended. The rescuer settles the attempts as lost.
"""
