"""Instructions of a job under construction: tasks, rings of buffers, semaphores, copies, program order."""
