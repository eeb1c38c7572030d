-- The atomic steps of the service, taken by one function, so that each is one round trip at most. It locks the ledgers
-- that are concerned, in an order that is the same everywhere; looks at the clock; decides; and writes each ledger once.
-- So it is right at READ COMMITTED: nothing it has read can change before it commits, and no two can wait for each other.
-- The rules are those of src/domain/ledger.ts and src/domain/limits.ts; the same tests hold both to them.
--
-- A claim comes as [subject, name, max, windowMs, counted], a window is kept as [count, endsAt], a code as
-- [id, hash, attempts, createdAt, expiresAt]. What is a span of time comes and goes as one: only the server knows what time
-- it is.

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
-- For each row: the sweep looks for what is over again and again, and mostly there is nothing.
CREATE TRIGGER resting_providers_revised AFTER INSERT OR UPDATE OR DELETE ON resting_providers
  FOR EACH ROW EXECUTE FUNCTION otpost_revise();
--> statement-breakpoint
-- Epoch milliseconds by the server's clock; a test may give its own.
CREATE FUNCTION otpost_now(given bigint DEFAULT NULL) RETURNS bigint LANGUAGE plpgsql AS $$
BEGIN
  RETURN coalesce(given, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint);
END $$;
--> statement-breakpoint
-- Takes steps, one after another and all or none: those that the requests of a moment ask for share what costs most, which
-- is a commit, and the row of their application. Written as one function, in arrays and without queries but those for rows,
-- since calls and queries are what PL/pgSQL is slow at.
--
-- `subjects` are those of all steps, in the order in which everybody locks them; `needed` says which of them need a row,
-- since only a row can be locked. Steps name them by their place, from 1. A step's second part is the time of a test, or
-- null. Steps and their answers:
--   ['admit', given, claims] and
--   ['begin', given, claims, place, brandSlug, id, hash, createdInMs, expiresInMs]
--     → {refused: place in claims, endsInMs} or {takings: [[place in claims, count, endsAt]]}
--   ['guess', given, claims, place, brandSlug, keyedCodes, failureBudget or null] → {kind, refused, endsInMs}
--   ['move', given, place, name, endsAt of the taking, endsInMs] → {}
--   ['abandon', given, place, brandSlug, id, [[place, name, endsAt]]] → {}
CREATE FUNCTION otpost_steps(subjects text[], needed boolean[], steps jsonb, tolerance_ms bigint, max_attempts int) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
  own text;
  held jsonb;
  held_end bigint;
  -- By place: what is kept of each subject, until when at most any of it matters, and what has become of it here.
  states jsonb[] := '{}';
  ends bigint[] := '{}';
  is_made boolean[] := '{}';
  is_changed boolean[] := '{}';
  clock_ms bigint;
  now_ms bigint;
  least_ms bigint;
  step jsonb;
  kind text;
  answer jsonb;
  answers jsonb := '[]';
  claims jsonb;
  claim jsonb;
  judges int;
  refused int;
  place int;
  name text;
  window_now jsonb;
  latest bigint;
  used bigint;
  ends_ms bigint;
  taken int;
  taken_claims int[];
  taken_places int[];
  taken_names text[];
  taken_counts bigint[];
  taken_ends bigint[];
  takings jsonb;
  code jsonb;
  blind text;
  is_right boolean;
  keyed text;
BEGIN
  FOR i IN 1 .. cardinality(subjects) LOOP
    own := subjects[i];
    is_made[i] := false;
    is_changed[i] := false;
    LOOP
      SELECT state, ends_at INTO held, held_end FROM ledgers WHERE subject = own FOR UPDATE;
      EXIT WHEN FOUND;
      held := '{"w": {}, "c": {}}';
      held_end := 0;
      EXIT WHEN NOT needed[i];
      INSERT INTO ledgers (subject, ends_at, state) VALUES (own, held_end, held) ON CONFLICT (subject) DO NOTHING;
      is_made[i] := FOUND;
      -- Else somebody has made it meanwhile, and may have removed it again: another look.
      EXIT WHEN FOUND;
    END LOOP;
    states[i] := held;
    ends[i] := held_end;
  END LOOP;

  -- After the locks: whoever had them before has looked at an earlier time.
  clock_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  FOR s IN 0 .. jsonb_array_length(steps) - 1 LOOP
    step := steps -> s;
    kind := step ->> 0;
    now_ms := coalesce((step ->> 1)::bigint, clock_ms);
    least_ms := least(least_ms, now_ms);

    IF kind = 'admit' OR kind = 'begin' OR kind = 'guess' THEN
      -- `decide`: the first claim whose window is open and full refuses all. The budget of a guess is looked at like them,
      -- and counted only once the code is known to be wrong.
      claims := step -> 2;
      judges := jsonb_array_length(claims);
      IF kind = 'guess' AND step -> 6 <> 'null' THEN
        claims := claims || jsonb_build_array(step -> 6);
      END IF;
      refused := NULL;
      taken := 0;
      FOR c IN 0 .. jsonb_array_length(claims) - 1 LOOP
        claim := claims -> c;
        place := (claim ->> 0)::int;
        name := claim ->> 1;
        latest := now_ms + (claim ->> 3)::bigint;
        window_now := states[place] -> 'w' -> name;
        used := 0;
        ends_ms := latest;
        IF window_now IS NOT NULL AND (window_now ->> 1)::bigint > now_ms THEN
          used := (window_now ->> 0)::bigint;
          IF (window_now ->> 1)::bigint > latest + tolerance_ms THEN
            -- From before the clock was set back: cut to its length, also by a refusal.
            states[place] := jsonb_set(states[place], ARRAY['w', name], jsonb_build_array(used, latest));
            ends[place] := greatest(ends[place], latest);
            is_changed[place] := true;
          ELSE
            ends_ms := (window_now ->> 1)::bigint;
          END IF;
          IF used >= (claim ->> 2)::bigint THEN
            refused := c;
            EXIT;
          END IF;
        END IF;
        IF c < judges AND (claim ->> 4)::boolean THEN
          taken := taken + 1;
          taken_claims[taken] := c;
          taken_places[taken] := place;
          taken_names[taken] := name;
          taken_counts[taken] := used + 1;
          taken_ends[taken] := ends_ms;
        END IF;
      END LOOP;

      takings := '[]';
      IF refused IS NULL THEN
        FOR t IN 1 .. taken LOOP
          place := taken_places[t];
          states[place] := jsonb_set(states[place], ARRAY['w', taken_names[t]], jsonb_build_array(taken_counts[t], taken_ends[t]));
          ends[place] := greatest(ends[place], taken_ends[t]);
          is_changed[place] := true;
          IF kind <> 'guess' THEN
            takings := takings || jsonb_build_array(jsonb_build_array(taken_claims[t], taken_counts[t], taken_ends[t]));
          END IF;
        END LOOP;
      END IF;
    END IF;

    IF kind = 'admit' OR kind = 'begin' THEN
      IF refused IS NOT NULL THEN
        answer := jsonb_build_object('refused', refused, 'endsInMs', ends_ms - now_ms);
      ELSE
        answer := jsonb_build_object('takings', takings);
        IF kind = 'begin' THEN
          place := (step ->> 3)::int;
          ends_ms := now_ms + (step ->> 8)::bigint;
          states[place] := jsonb_set(states[place], ARRAY['c', step ->> 4],
            jsonb_build_array(step -> 5, step -> 6, 0, now_ms + (step ->> 7)::bigint, ends_ms));
          ends[place] := greatest(ends[place], ends_ms);
          is_changed[place] := true;
        END IF;
      END IF;

    ELSIF kind = 'guess' THEN
      place := (step ->> 3)::int;
      code := states[place] -> 'c' -> (step ->> 4);
      IF refused IS NOT NULL THEN
        answer := jsonb_build_object('kind', 'refused', 'refused', refused, 'endsInMs', ends_ms - now_ms);
      ELSIF code IS NULL OR (code ->> 4)::bigint <= now_ms OR (code ->> 3)::bigint > now_ms + tolerance_ms THEN
        answer := '{"kind": "absent"}';
      ELSIF (code ->> 2)::int >= max_attempts THEN
        answer := jsonb_build_object('kind', 'locked', 'endsInMs', (code ->> 4)::bigint - now_ms);
      ELSE
        -- Hashes are compared through a hash of both under a number of this guess alone, so that the time it takes tells
        -- nothing about them.
        blind := gen_random_uuid();
        is_right := false;
        FOR k IN 0 .. jsonb_array_length(step -> 5) - 1 LOOP
          keyed := translate(encode(sha256(convert_to((code ->> 0) || ' ' || (step -> 5 ->> k), 'UTF8')), 'base64'), '+/=', '-_');
          is_right := sha256(convert_to(blind || keyed, 'UTF8')) = sha256(convert_to(blind || (code ->> 1), 'UTF8')) OR is_right;
        END LOOP;
        is_changed[place] := true;
        IF is_right THEN
          answer := '{"kind": "verified"}';
          states[place] := states[place] #- ARRAY['c', step ->> 4];
          IF step -> 6 <> 'null' THEN
            states[place] := states[place] #- ARRAY['w', step -> 6 ->> 1];
          END IF;
        ELSE
          answer := '{"kind": "mismatch"}';
          states[place] := jsonb_set(states[place], ARRAY['c', step ->> 4, '2'], to_jsonb((code ->> 2)::int + 1));
          IF step -> 6 <> 'null' THEN
            -- It was the last that was looked at: `used` and `ends_ms` are of it.
            place := (step -> 6 ->> 0)::int;
            states[place] := jsonb_set(states[place], ARRAY['w', step -> 6 ->> 1], jsonb_build_array(used + 1, ends_ms));
            ends[place] := greatest(ends[place], ends_ms);
            is_changed[place] := true;
          END IF;
        END IF;
      END IF;

    ELSIF kind = 'move' THEN
      answer := '{}';
      place := (step ->> 2)::int;
      window_now := states[place] -> 'w' -> (step ->> 3);
      ends_ms := now_ms + (step ->> 5)::bigint;
      used := 1;
      IF window_now IS NOT NULL THEN
        IF (window_now ->> 1)::bigint = (step ->> 4)::bigint THEN
          used := (window_now ->> 0)::bigint;
        ELSIF (window_now ->> 1)::bigint > now_ms THEN
          -- One of a later taking is not cut short.
          used := (window_now ->> 0)::bigint;
          ends_ms := greatest(ends_ms, (window_now ->> 1)::bigint);
        END IF;
      END IF;
      states[place] := jsonb_set(states[place], ARRAY['w', step ->> 3], jsonb_build_array(used, ends_ms));
      ends[place] := greatest(ends[place], ends_ms);
      is_changed[place] := true;

    ELSIF kind = 'abandon' THEN
      answer := '{}';
      place := (step ->> 2)::int;
      IF states[place] #>> ARRAY['c', step ->> 3, '0'] = step ->> 4 THEN
        states[place] := states[place] #- ARRAY['c', step ->> 3];
        is_changed[place] := true;
      END IF;
      FOR t IN 0 .. jsonb_array_length(step -> 5) - 1 LOOP
        claim := step -> 5 -> t;
        place := (claim ->> 0)::int;
        window_now := states[place] -> 'w' -> (claim ->> 1);
        CONTINUE WHEN window_now IS NULL OR (window_now ->> 1)::bigint <> (claim ->> 2)::bigint;
        -- Windows open with their first counted request: one that has counted nothing else is closed again.
        IF (window_now ->> 0)::bigint = 1 THEN
          states[place] := states[place] #- ARRAY['w', claim ->> 1];
        ELSE
          states[place] := jsonb_set(states[place], ARRAY['w', claim ->> 1, '0'], to_jsonb((window_now ->> 0)::bigint - 1));
        END IF;
        is_changed[place] := true;
      END LOOP;
    ELSE
      RAISE EXCEPTION 'otpost_steps knows no step %', kind;
    END IF;
    answers := answers || jsonb_build_array(answer);
  END LOOP;

  FOR i IN 1 .. cardinality(subjects) LOOP
    own := subjects[i];
    IF is_changed[i] THEN
      -- What is over counts for nothing, and is left out before there is much of it.
      IF pg_column_size(states[i]) > 600 THEN
        states[i] := otpost_pruned(states[i], least_ms);
      END IF;
      IF states[i] = '{"w": {}, "c": {}}' THEN
        DELETE FROM ledgers WHERE subject = own;
      ELSE
        UPDATE ledgers SET state = states[i], ends_at = ends[i] WHERE subject = own;
      END IF;
    ELSIF is_made[i] THEN
      -- Made to be locked, and nothing came of it.
      DELETE FROM ledgers WHERE subject = own;
    END IF;
  END LOOP;
  RETURN jsonb_build_object('at', clock_ms, 'answers', answers);
END $$;
--> statement-breakpoint
-- A ledger without what is over.
CREATE FUNCTION otpost_pruned(state jsonb, now_ms bigint) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object(
    'w', coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(state -> 'w') WHERE (value ->> 1)::bigint > now_ms), '{}'),
    'c', coalesce((SELECT jsonb_object_agg(key, value) FROM jsonb_each(state -> 'c') WHERE (value ->> 4)::bigint > now_ms), '{}'))
$$;
--> statement-breakpoint
-- `OtpStore.adopt`: moves what is kept under former names to the present one.
CREATE FUNCTION otpost_adopt(own text, former jsonb, given bigint) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
  name text;
  others text[] := ARRAY(SELECT value FROM jsonb_array_elements_text(former) WHERE value <> own);
  into_state jsonb := '{"w": {}, "c": {}}';
  into_end bigint := 0;
  found_state jsonb;
  found_end bigint;
  each record;
  present jsonb;
  now_ms bigint;
BEGIN
  -- A look without a lock: while nothing is kept under a former name, which is nearly always, this is all.
  IF NOT EXISTS (SELECT FROM ledgers WHERE subject = ANY (others)) THEN
    RETURN jsonb_build_object('at', otpost_now(given));
  END IF;
  -- In the order in which everybody locks. Each name gets a row: without one, the present name could vanish before it has
  -- taken in what the others hold, and of two steps under two of them the later alone be seen.
  FOR name IN SELECT DISTINCT concerned.subject COLLATE "C" FROM unnest(others || own) AS concerned (subject) ORDER BY 1 LOOP
    LOOP
      PERFORM FROM ledgers WHERE subject = name FOR UPDATE;
      EXIT WHEN FOUND;
      INSERT INTO ledgers (subject, ends_at, state) VALUES (name, 0, into_state) ON CONFLICT (subject) DO NOTHING;
      EXIT WHEN FOUND;
    END LOOP;
  END LOOP;
  -- After the locks, as in a step.
  now_ms := otpost_now(given);
  FOREACH name IN ARRAY others LOOP
    SELECT state, ends_at INTO into_state, into_end FROM ledgers WHERE subject = own;
    DELETE FROM ledgers WHERE subject = name RETURNING state, ends_at INTO found_state, found_end;
    -- It is named twice.
    CONTINUE WHEN found_state IS NULL;
    FOR each IN SELECT * FROM jsonb_each(found_state -> 'c') LOOP
      present := into_state -> 'c' -> each.key;
      -- The newer code counts.
      IF present IS NULL OR (present ->> 3)::bigint < (each.value ->> 3)::bigint THEN
        into_state := jsonb_set(into_state, ARRAY['c', each.key], each.value);
      END IF;
    END LOOP;
    FOR each IN SELECT * FROM jsonb_each(found_state -> 'w') WHERE (value ->> 1)::bigint > now_ms LOOP
      -- Of a window that is open all that was counted.
      present := into_state -> 'w' -> each.key;
      IF (present ->> 1)::bigint > now_ms THEN
        into_state := jsonb_set(into_state, ARRAY['w', each.key], jsonb_build_array(
          (each.value ->> 0)::bigint + (present ->> 0)::bigint,
          greatest((each.value ->> 1)::bigint, (present ->> 1)::bigint)));
      ELSE
        into_state := jsonb_set(into_state, ARRAY['w', each.key], each.value);
      END IF;
    END LOOP;
    UPDATE ledgers SET state = into_state, ends_at = greatest(into_end, found_end) WHERE subject = own;
  END LOOP;
  -- Made to be locked, and nothing came of it.
  DELETE FROM ledgers WHERE subject = own AND state = '{"w": {}, "c": {}}';
  RETURN jsonb_build_object('at', now_ms);
END $$;
--> statement-breakpoint
-- Adds what was counted, [at, kind, channel, brand, provider, detail, count], by every step of time.
CREATE FUNCTION otpost_count(counts jsonb, own_part int, steps jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  each record;
BEGIN
  FOR each IN
    SELECT step, step_at, kind, channel, brand, provider, detail, sum(times) AS times
      FROM (SELECT step, (tally ->> 0)::bigint / step * step AS step_at, tally ->> 1 AS kind, tally ->> 2 AS channel,
            tally ->> 3 AS brand, tally ->> 4 AS provider, tally ->> 5 AS detail, (tally ->> 6)::bigint AS times
          FROM jsonb_array_elements(counts) AS tally,
            (SELECT value::int AS step FROM jsonb_array_elements_text(steps)) AS of_steps) AS each_step
      GROUP BY step, step_at, kind, channel, brand, provider, detail
      ORDER BY step, step_at, kind COLLATE "C", channel COLLATE "C", brand COLLATE "C", provider COLLATE "C", detail COLLATE "C"
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
-- `Outbox.add`: a message comes as its row, without an id.
CREATE FUNCTION otpost_keep_message(message jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  -- An id is seen only after every lower one: who reads on from an id must not miss a message. The lock lasts until this one
  -- statement is committed, whatever has become of the node that asked for it.
  LOCK TABLE outbox IN SHARE ROW EXCLUSIVE MODE;
  INSERT INTO outbox (created_at, channel, recipient, identity, route, brand_slug, brand_name, subject, text, html,
      template_key, variables, request_id)
    SELECT created_at, channel, recipient, identity, route, brand_slug, brand_name, subject, text, html, template_key,
        variables, request_id
      FROM jsonb_populate_record(NULL::outbox, message);
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
