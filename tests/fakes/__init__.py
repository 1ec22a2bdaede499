"""Test doubles that behave, on loopback: servers of models that say what a script has them say, and a Telegram.

A test opens one in its own run (`tests.fakes.openai.open_openai`, `tests.fakes.anthropic.open_anthropic`); a person, or
a test of a whole process, starts one beside it (`python -m tests.fakes.openai`). What the model does is described
once, in `tests.fakes.script`, for every wire. Telegram, with the people who write to the bot, is `tests.fakes.botapi`.
"""
