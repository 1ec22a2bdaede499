-- Where the times that people write in a conversation are meant.

ALTER TABLE sessions ADD COLUMN zone text;
