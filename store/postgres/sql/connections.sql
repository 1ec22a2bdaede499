-- What a connection itself is asked.

-- name: durable
-- A commit is on the disk when it is answered, also on a server that does not wait for its disk by default.
SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'

-- name: alive
-- Nothing: that there is an answer is the answer.
SELECT
