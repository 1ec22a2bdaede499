"""What the state machine of the scheduler is made of.

    plans    what a message is told to do: values, and how to draw them
    model    where every message of every session must be, kept apart from the scheduler
    world    one live scheduler whose handlers act out their plans and report to the model
    loop     trio on this thread, one step at a time
    nesting  nested work on lanes of one, for the plain test
"""
