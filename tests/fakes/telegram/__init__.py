"""Telegram as a bot sees it, and as the people see it who write to the bot. `tests.fakes.botapi` is the way in.

    people ──says, presses, leaves──> Chat ──> Updates ──getUpdates or Webhook──> the bot
    people <──sees, typing, menus─── Chat <── methods <──Parameters, Trouble, Pace── the bot

What the real server refuses is refused here, in its own words.
"""
