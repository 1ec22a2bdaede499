"""What the state machine of the scheduler is made of.

plans       what a message is told to do: values, and how to draw them
parts       messages, turns, sessions and runs as the model sees them
model       where every message must be and how it must end; `stops` is the part about cancels and shutdown
world       one live scheduler and the model beside it
acting      the handlers, which act out their plans and report to the model
inspection  what must hold after every step, at rest and at the end
loop        trio on this thread, one step at a time
nesting     nested work on lanes of one, for the plain test
"""
