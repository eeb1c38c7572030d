-- The atomic steps of the service, each a function, so that each is one round trip. A step locks the ledgers that it
-- concerns, in an order that is the same everywhere; looks at the clock; decides; and writes each ledger once. So it is
-- right at READ COMMITTED: nothing it has read can change before it commits, and no two steps can wait for each other.
-- The rules are those of src/domain/ledger.ts and src/domain/limits.ts; the same tests hold both to them.
--
-- A claim comes as [subject, name, max, windowMs, counted], a window is kept as [count, endsAt], a code as
-- [id, hash, attempts, createdAt, expiresAt]. What is a span of time comes as one: only the server knows what time it is.

-- HOT updates want room in the page; what is over is replaced within minutes.
ALTER TABLE ledgers SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
--> statement-breakpoint
INSERT INTO revision (id, number) VALUES (1, 1);
--> statement-breakpoint
CREATE FUNCTION otpost_revise() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE revision SET number = number + 1 WHERE id = 1;
  RETURN NULL;
END $$;
--> statement-breakpoint
CREATE TRIGGER brands_revised AFTER INSERT OR UPDATE OR DELETE ON brands
  FOR EACH STATEMENT EXECUTE FUNCTION otpost_revise();
--> statement-breakpoint
-- When a key was last used is nothing that anybody remembers.
CREATE TRIGGER app_keys_revised AFTER INSERT OR DELETE OR UPDATE OF key_sha256, app_id, revoked_at ON app_keys
  FOR EACH STATEMENT EXECUTE FUNCTION otpost_revise();
--> statement-breakpoint
CREATE TRIGGER resting_providers_revised AFTER INSERT OR UPDATE OR DELETE ON resting_providers
  FOR EACH STATEMENT EXECUTE FUNCTION otpost_revise();
--> statement-breakpoint
-- Epoch milliseconds by the server's clock; a test may give its own.
CREATE FUNCTION otpost_now(given bigint DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce(given, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
END $$;
--> statement-breakpoint
-- Locks these ledgers and returns what they hold, by subject. Those to be created get a row, since only a row can be
-- locked. The order: by subject, but applications last, which many wait for.
CREATE FUNCTION otpost_lock(subjects text[], created text[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  own text;
  found_state jsonb;
  states jsonb := '{}';
BEGIN
  FOR own IN
    SELECT DISTINCT each COLLATE "C" FROM unnest(subjects) AS each ORDER BY each COLLATE "C"
  LOOP
    CONTINUE WHEN own LIKE 'app:%';
    states := states || jsonb_build_object(own, otpost_lock_one(own, own = ANY (created)));
  END LOOP;
  FOR own IN
    SELECT DISTINCT each COLLATE "C" FROM unnest(subjects) AS each ORDER BY each COLLATE "C"
  LOOP
    CONTINUE WHEN own NOT LIKE 'app:%';
    states := states || jsonb_build_object(own, otpost_lock_one(own, own = ANY (created)));
  END LOOP;
  RETURN states;
END $$;
--> statement-breakpoint
CREATE FUNCTION otpost_lock_one(own text, is_created boolean) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  held jsonb;
BEGIN
  LOOP
    SELECT state INTO held FROM ledgers WHERE subject = own FOR UPDATE;
    IF FOUND THEN
      RETURN held;
    END IF;
    EXIT WHEN NOT is_created;
    INSERT INTO ledgers (subject, ends_at, state) VALUES (own, 0, '{"w": {}, "c": {}}')
      ON CONFLICT (subject) DO NOTHING;
    EXIT WHEN FOUND;
    -- Somebody else has made it, and may have removed it again: another look.
  END LOOP;
  RETURN '{"w": {}, "c": {}}';
END $$;
--> statement-breakpoint
-- Writes a ledger that is locked, without what is over; removes it where nothing is left.
CREATE FUNCTION otpost_store(own text, state_now jsonb, now_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  windows jsonb;
  codes jsonb;
  windows_end bigint;
  codes_end bigint;
BEGIN
  SELECT jsonb_object_agg(each.key, each.value), max((each.value ->> 1)::bigint) INTO windows, windows_end
    FROM jsonb_each(state_now -> 'w') AS each WHERE (each.value ->> 1)::bigint > now_ms;
  SELECT jsonb_object_agg(each.key, each.value), max((each.value ->> 4)::bigint) INTO codes, codes_end
    FROM jsonb_each(state_now -> 'c') AS each WHERE (each.value ->> 4)::bigint > now_ms;
  IF windows IS NULL AND codes IS NULL THEN
    DELETE FROM ledgers WHERE subject = own;
  ELSE
    UPDATE ledgers
      SET ends_at = greatest(windows_end, codes_end),
          state = jsonb_build_object('w', coalesce(windows, '{}'), 'c', coalesce(codes, '{}'))
      WHERE subject = own;
  END IF;
END $$;
--> statement-breakpoint
-- `decide`: takes all claims or none. `changes` are the windows as they are to be stored, [subject, name, count, endsAt];
-- the last `taken` of them are those that counted. `refused` is the position of the claim that refused.
CREATE FUNCTION otpost_decide(states jsonb, claims jsonb, now_ms bigint, tolerance_ms bigint, OUT refused int, OUT ends_at bigint, OUT changes jsonb, OUT takings jsonb)
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  claim jsonb;
  open_window jsonb;
  latest bigint;
  used bigint;
  place int := 0;
  cut jsonb := '[]';
BEGIN
  takings := '[]';
  FOR claim IN SELECT value FROM jsonb_array_elements(claims) LOOP
    latest := now_ms + (claim ->> 3)::bigint;
    open_window := states #> ARRAY[claim ->> 0, 'w', claim ->> 1];
    used := 0;
    ends_at := latest;
    IF open_window IS NOT NULL AND (open_window ->> 1)::bigint > now_ms THEN
      used := (open_window ->> 0)::bigint;
      IF (open_window ->> 1)::bigint > latest + tolerance_ms THEN
        -- From before the clock was set back: cut to its length, also by a refusal.
        cut := cut || jsonb_build_array(jsonb_build_array(claim -> 0, claim -> 1, used, latest));
      ELSE
        ends_at := (open_window ->> 1)::bigint;
      END IF;
      IF used >= (claim ->> 2)::bigint THEN
        refused := place;
        changes := cut;
        takings := '[]';
        RETURN;
      END IF;
    END IF;
    IF (claim ->> 4)::boolean THEN
      takings := takings || jsonb_build_array(jsonb_build_array(claim -> 0, claim -> 1, used + 1, ends_at));
    END IF;
    place := place + 1;
  END LOOP;
  changes := cut || takings;
END $$;
--> statement-breakpoint
CREATE FUNCTION otpost_apply(states jsonb, changes jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  change jsonb;
BEGIN
  FOR change IN SELECT value FROM jsonb_array_elements(changes) LOOP
    states := jsonb_set(states, ARRAY[change ->> 0, 'w', change ->> 1], jsonb_build_array(change -> 2, change -> 3));
  END LOOP;
  RETURN states;
END $$;
--> statement-breakpoint
-- The subjects of claims; those that count need a row.
CREATE FUNCTION otpost_subjects(claims jsonb, counted_only boolean) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT coalesce(array_agg(DISTINCT each ->> 0), '{}') FROM jsonb_array_elements(claims) AS each
    WHERE (each ->> 4)::boolean OR NOT counted_only
$$;
--> statement-breakpoint
-- Stores these ledgers, and removes rows that were made to be locked and hold nothing.
CREATE FUNCTION otpost_store_all(states jsonb, subjects text[], now_ms bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  own text;
BEGIN
  FOREACH own IN ARRAY subjects LOOP
    PERFORM otpost_store(own, states -> own, now_ms);
  END LOOP;
END $$;
--> statement-breakpoint
-- `OtpStore.admit`
CREATE FUNCTION otpost_admit(claims jsonb, tolerance_ms bigint, given bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  states jsonb := otpost_lock(otpost_subjects(claims, false), otpost_subjects(claims, true));
  now_ms bigint := otpost_now(given);
  verdict record;
BEGIN
  SELECT * INTO verdict FROM otpost_decide(states, claims, now_ms, tolerance_ms);
  states := otpost_apply(states, verdict.changes);
  PERFORM otpost_store_all(states, otpost_subjects(claims, jsonb_array_length(verdict.changes) = 0), now_ms);
  RETURN jsonb_build_object('at', now_ms, 'refused', verdict.refused, 'endsAt', verdict.ends_at, 'takings', verdict.takings);
END $$;
--> statement-breakpoint
-- `OtpStore.beginSend`
CREATE FUNCTION otpost_begin_send(claims jsonb, own text, brand text, id text, hash text, created_in_ms bigint, expires_in_ms bigint, tolerance_ms bigint, given bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  subjects text[] := otpost_subjects(claims, false) || own;
  states jsonb := otpost_lock(subjects, otpost_subjects(claims, true) || own);
  now_ms bigint := otpost_now(given);
  verdict record;
BEGIN
  SELECT * INTO verdict FROM otpost_decide(states, claims, now_ms, tolerance_ms);
  states := otpost_apply(states, verdict.changes);
  IF verdict.refused IS NULL THEN
    states := jsonb_set(states, ARRAY[own, 'c', brand],
      jsonb_build_array(id, hash, 0, now_ms + created_in_ms, now_ms + expires_in_ms));
  END IF;
  PERFORM otpost_store_all(states, ARRAY(SELECT DISTINCT unnest(subjects)), now_ms);
  RETURN jsonb_build_object('at', now_ms, 'refused', verdict.refused, 'endsAt', verdict.ends_at, 'takings', verdict.takings);
END $$;
--> statement-breakpoint
-- `OtpStore.guess`. Hashes are compared through a hash of both under a number of this call alone, so that the time it
-- takes tells nothing about them.
CREATE FUNCTION otpost_guess(claims jsonb, budget jsonb, own text, brand text, keyed_codes jsonb, max_attempts int, tolerance_ms bigint, given bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  judges jsonb := CASE WHEN budget IS NULL THEN claims ELSE claims || jsonb_build_array(jsonb_set(budget, '{4}', 'false')) END;
  states jsonb := otpost_lock(otpost_subjects(judges, false) || own, otpost_subjects(judges, true));
  now_ms bigint := otpost_now(given);
  changed text[];
  verdict record;
  code jsonb;
  blind text := gen_random_uuid()::text;
  is_right boolean;
  kind text;
BEGIN
  code := states #> ARRAY[own, 'c', brand];
  SELECT * INTO verdict FROM otpost_decide(states, judges, now_ms, tolerance_ms);
  states := otpost_apply(states, verdict.changes);
  changed := ARRAY(SELECT DISTINCT each ->> 0 FROM jsonb_array_elements(verdict.changes) AS each);
  IF verdict.refused IS NOT NULL THEN
    kind := 'refused';
    -- Rows that were made to be locked.
    changed := ARRAY(SELECT DISTINCT unnest(changed || otpost_subjects(judges, true)));
  ELSIF code IS NULL OR (code ->> 4)::bigint <= now_ms OR (code ->> 3)::bigint > now_ms + tolerance_ms THEN
    kind := 'absent';
  ELSIF (code ->> 2)::int >= max_attempts THEN
    kind := 'locked';
  ELSE
    SELECT bool_or(
        sha256(convert_to(blind || translate(rtrim(encode(sha256(convert_to((code ->> 0) || ' ' || keyed, 'UTF8')), 'base64'), '='), '+/', '-_'), 'UTF8'))
        = sha256(convert_to(blind || (code ->> 1), 'UTF8')))
      INTO is_right FROM jsonb_array_elements_text(keyed_codes) AS keyed;
    IF is_right THEN
      kind := 'verified';
      states := states #- ARRAY[own, 'c', brand];
      IF budget IS NOT NULL THEN
        states := states #- ARRAY[own, 'w', budget ->> 1];
      END IF;
    ELSE
      kind := 'mismatch';
      states := jsonb_set(states, ARRAY[own, 'c', brand, '2'], to_jsonb((code ->> 2)::int + 1));
      IF budget IS NOT NULL THEN
        states := otpost_apply(states, (otpost_decide(states, jsonb_build_array(budget), now_ms, tolerance_ms)).changes);
      END IF;
    END IF;
    changed := ARRAY(SELECT DISTINCT unnest(changed || own));
  END IF;
  PERFORM otpost_store_all(states, changed, now_ms);
  RETURN jsonb_build_object('at', now_ms, 'kind', kind, 'refused', verdict.refused, 'endsAt', verdict.ends_at, 'expiresAt', code -> 4);
END $$;
--> statement-breakpoint
-- `OtpStore.moveEnd`
CREATE FUNCTION otpost_move_end(own text, window_name text, taken_ends_at bigint, ends_in_ms bigint, given bigint)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  states jsonb := otpost_lock(ARRAY[own], ARRAY[own]);
  now_ms bigint := otpost_now(given);
  ends bigint := now_ms + ends_in_ms;
  present jsonb := states #> ARRAY[own, 'w', window_name];
  is_own boolean := coalesce((present ->> 1)::bigint = taken_ends_at, false);
  is_other boolean := coalesce((present ->> 1)::bigint > now_ms AND (present ->> 1)::bigint <> taken_ends_at, false);
BEGIN
  IF NOT is_other OR (present ->> 1)::bigint < ends THEN
    states := otpost_apply(states, jsonb_build_array(jsonb_build_array(
      own, window_name, CASE WHEN is_own OR is_other THEN (present ->> 0)::bigint ELSE 1 END, ends)));
  END IF;
  PERFORM otpost_store(own, states -> own, now_ms);
  RETURN jsonb_build_object('at', now_ms);
END $$;
--> statement-breakpoint
-- `OtpStore.abandonSend`; a taking comes as [subject, name, endsAt].
CREATE FUNCTION otpost_abandon_send(own text, brand text, id text, takings jsonb, given bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  subjects text[] := ARRAY(SELECT DISTINCT each ->> 0 FROM jsonb_array_elements(takings) AS each UNION SELECT own);
  states jsonb := otpost_lock(subjects, '{}');
  now_ms bigint := otpost_now(given);
  taking jsonb;
  present jsonb;
BEGIN
  IF states #>> ARRAY[own, 'c', brand, '0'] = id THEN
    states := states #- ARRAY[own, 'c', brand];
  END IF;
  FOR taking IN SELECT value FROM jsonb_array_elements(takings) LOOP
    present := states #> ARRAY[taking ->> 0, 'w', taking ->> 1];
    CONTINUE WHEN present IS NULL OR (present ->> 1)::bigint <> (taking ->> 2)::bigint;
    -- Windows open with their first counted request: one that has counted nothing else is closed again.
    IF (present ->> 0)::bigint = 1 THEN
      states := states #- ARRAY[taking ->> 0, 'w', taking ->> 1];
    ELSE
      states := jsonb_set(states, ARRAY[taking ->> 0, 'w', taking ->> 1, '0'], to_jsonb((present ->> 0)::bigint - 1));
    END IF;
  END LOOP;
  PERFORM otpost_store_all(states, subjects, now_ms);
  RETURN jsonb_build_object('at', now_ms);
END $$;
--> statement-breakpoint
-- `OtpStore.adopt`
CREATE FUNCTION otpost_adopt(own text, former jsonb, given bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := otpost_now(given);
  others text[] := '{}';
  name text;
  states jsonb;
  each record;
  present jsonb;
BEGIN
  FOR name IN SELECT value FROM jsonb_array_elements_text(former) LOOP
    -- A look without a lock: while nobody has a former name, which is nearly always, this is all.
    IF name <> own AND EXISTS (SELECT FROM ledgers WHERE subject = name) THEN
      others := others || name;
    END IF;
  END LOOP;
  IF cardinality(others) = 0 THEN
    RETURN jsonb_build_object('at', now_ms);
  END IF;
  states := otpost_lock(others || own, ARRAY[own]);
  now_ms := otpost_now(given);
  FOREACH name IN ARRAY others LOOP
    FOR each IN SELECT * FROM jsonb_each(states #> ARRAY[name, 'c']) LOOP
      present := states #> ARRAY[own, 'c', each.key];
      IF present IS NULL OR (present ->> 3)::bigint < (each.value ->> 3)::bigint THEN
        states := jsonb_set(states, ARRAY[own, 'c', each.key], each.value);
      END IF;
    END LOOP;
    FOR each IN SELECT * FROM jsonb_each(states #> ARRAY[name, 'w']) LOOP
      present := states #> ARRAY[own, 'w', each.key];
      states := jsonb_set(states, ARRAY[own, 'w', each.key], jsonb_build_array(
        (each.value ->> 0)::bigint + coalesce((present ->> 0)::bigint, 0),
        greatest((each.value ->> 1)::bigint, (present ->> 1)::bigint)));
    END LOOP;
    states := jsonb_set(states, ARRAY[name], '{"w": {}, "c": {}}');
  END LOOP;
  PERFORM otpost_store_all(states, others || own, now_ms);
  RETURN jsonb_build_object('at', now_ms);
END $$;
--> statement-breakpoint
-- Adds what was counted, [at, kind, channel, brand, provider, detail, count], by every step of time.
CREATE FUNCTION otpost_count(counts jsonb, own_part int, steps jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each record;
BEGIN
  FOR each IN
    SELECT step, (tally ->> 0)::bigint / step * step AS step_at, tally ->> 1 AS kind, tally ->> 2 AS channel,
        tally ->> 3 AS brand, tally ->> 4 AS provider, tally ->> 5 AS detail, sum((tally ->> 6)::bigint) AS times
      FROM jsonb_array_elements(counts) AS tally, LATERAL (SELECT value::int AS step FROM jsonb_array_elements_text(steps)) AS of_steps
      GROUP BY 1, 2, 3, 4, 5, 6, 7
      ORDER BY 1, 2, 3 COLLATE "C", 4 COLLATE "C", 5 COLLATE "C", 6 COLLATE "C", 7 COLLATE "C"
  LOOP
    INSERT INTO tallies AS kept (part, step_ms, at, kind, channel, brand, provider, detail, count)
      VALUES (own_part, each.step, each.step_at, each.kind, each.channel, each.brand, each.provider, each.detail, each.times)
      ON CONFLICT (part, step_ms, at, kind, channel, brand, provider, detail) DO UPDATE SET count = kept.count + excluded.count;
  END LOOP;
END $$;
--> statement-breakpoint
-- `JournalBook.keepEntries`: an entry comes as [requestId, app, story, attempts, right code or null], the latter as
-- [at, channel, brand, recipientHash]; `bins` are the upper bounds, in seconds, by which the time to the right code counts.
CREATE FUNCTION otpost_keep_entries(entries jsonb, counts jsonb, own_part int, steps jsonb, otp_templates jsonb, bins jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  entry jsonb;
  tried jsonb;
  right_code jsonb;
  sent record;
  bin text;
BEGIN
  FOR entry IN SELECT value FROM jsonb_array_elements(entries) LOOP
    INSERT INTO stories (app, request_id, story) VALUES (entry ->> 1, entry ->> 0, entry -> 2)
      ON CONFLICT (app, request_id) DO UPDATE SET story = excluded.story;
    FOR tried IN SELECT value FROM jsonb_array_elements(entry -> 3) LOOP
      INSERT INTO deliveries (request_id, attempt, at, app, brand, channel, route, provider, template, recipient_hash,
          recipient, position, segments, encoding, outcome, error_class, reason, vendor_id, receipt_key, duration_ms)
        VALUES (tried ->> 0, (tried ->> 1)::int, (tried ->> 2)::bigint, tried ->> 3, tried ->> 4, tried ->> 5,
          tried ->> 6, tried ->> 7, tried ->> 8, tried ->> 9, tried ->> 10, (tried ->> 11)::int,
          (tried ->> 12)::int, tried ->> 13, tried ->> 14, tried ->> 15, tried ->> 16, tried ->> 17,
          tried ->> 18, (tried ->> 19)::int)
        ON CONFLICT (recipient_hash, request_id, attempt) DO UPDATE
          SET at = excluded.at, provider = excluded.provider, outcome = excluded.outcome, error_class = excluded.error_class,
            reason = excluded.reason, vendor_id = excluded.vendor_id, receipt_key = excluded.receipt_key,
            duration_ms = excluded.duration_ms;
    END LOOP;
    right_code := entry -> 4;
    CONTINUE WHEN jsonb_typeof(right_code) = 'null';
    SELECT provider, at INTO sent FROM deliveries
      WHERE recipient_hash = right_code ->> 3 AND brand = right_code ->> 2 AND outcome IN ('accepted', 'unknown')
        AND otp_templates ? template
      ORDER BY request_id DESC, attempt DESC LIMIT 1;
    counts := counts || jsonb_build_array(jsonb_build_array(right_code -> 0, 'verify', right_code -> 1, right_code -> 2,
      coalesce(sent.provider, ''), 'ok', 1));
    IF sent.provider IS NOT NULL THEN
      SELECT value INTO bin FROM jsonb_array_elements_text(bins)
        WHERE ((right_code ->> 0)::bigint - sent.at) / 1000.0 <= value::numeric ORDER BY value::numeric LIMIT 1;
      counts := counts || jsonb_build_array(jsonb_build_array(right_code -> 0, 'verify-time', right_code -> 1,
        right_code -> 2, sent.provider, coalesce(bin, 'more'), 1));
    END IF;
  END LOOP;
  PERFORM otpost_count(counts, own_part, steps);
END $$;
--> statement-breakpoint
-- `ReceiptBook.keepReceipts`: news come as [key, status, reason, at]; `ranks` is the standing of each status.
CREATE FUNCTION otpost_keep_receipts(of_provider text, news jsonb, ranks jsonb, own_part int, steps jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  item record;
  before record;
  counts jsonb := '[]';
BEGIN
  -- By key, so that two nodes that are told the same don't wait for each other; then in the order in which they came.
  FOR item IN
    SELECT value ->> 0 AS key, value ->> 1 AS status, value ->> 2 AS reason, (value ->> 3)::bigint AS at
      FROM jsonb_array_elements(news) WITH ORDINALITY AS each (value, place) ORDER BY (value ->> 0) COLLATE "C", place
  LOOP
    INSERT INTO receipts (key, status, reason, at) VALUES (item.key, item.status, item.reason, item.at)
      ON CONFLICT (key) DO NOTHING;
    IF NOT FOUND THEN
      SELECT status, at INTO before FROM receipts WHERE key = item.key FOR UPDATE;
      -- Gone since, by the sweep: so old that it does not matter.
      CONTINUE WHEN NOT FOUND OR (ranks ->> item.status)::int <= (ranks ->> before.status)::int;
      UPDATE receipts SET status = item.status, reason = item.reason, at = item.at WHERE key = item.key;
      IF before.status <> 'pending' THEN
        counts := counts || jsonb_build_array(jsonb_build_array(before.at, 'receipt', 'SMS', '', of_provider, before.status, -1));
      END IF;
    END IF;
    IF item.status <> 'pending' THEN
      counts := counts || jsonb_build_array(jsonb_build_array(item.at, 'receipt', 'SMS', '', of_provider, item.status, 1));
    END IF;
  END LOOP;
  PERFORM otpost_count(counts, own_part, steps);
END $$;
--> statement-breakpoint
-- Takes or prolongs a lease, for work that one node at a time does; false while another holds it.
CREATE FUNCTION otpost_lease(lease text, own_holder text, length_ms bigint, given bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint := otpost_now(given);
BEGIN
  INSERT INTO leases AS kept (name, holder, ends_at) VALUES (lease, own_holder, now_ms + length_ms)
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, ends_at = excluded.ends_at
      WHERE kept.holder = excluded.holder OR kept.ends_at <= now_ms OR kept.ends_at > now_ms + 2 * length_ms;
  RETURN FOUND;
END $$;
