CREATE TABLE "codes_and_limits" (
	"subject" text COLLATE "C" NOT NULL,
	"name" text COLLATE "C" NOT NULL,
	"count" integer,
	"code_id" text,
	"code_hash" text,
	"attempts" integer,
	"created_at" bigint,
	"expires_at" bigint NOT NULL,
	CONSTRAINT "codes_and_limits_subject_name_pk" PRIMARY KEY("subject","name"),
	CONSTRAINT "codes_and_limits_kind" CHECK (("codes_and_limits"."count" IS NULL) <> ("codes_and_limits"."code_hash" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."code_id" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."attempts" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."created_at" IS NULL))
);
--> statement-breakpoint
-- HOT updates need room in the page; expired rows are replaced within minutes.
ALTER TABLE codes_and_limits SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
--> statement-breakpoint
-- A node of the version before may still serve: what it writes after the copy would be lost.
LOCK TABLE ledgers IN ACCESS EXCLUSIVE MODE;
--> statement-breakpoint
-- Open windows and live codes move over: a window was stored as [count, endsAt], a code as
-- [id, hash, attempts, createdAt, expiresAt].
INSERT INTO codes_and_limits (subject, name, count, expires_at)
	SELECT CASE WHEN subject LIKE 'app:%' THEN subject ELSE left(subject, 22) END, key, (value ->> 0)::int, (value ->> 1)::bigint FROM ledgers, jsonb_each(state -> 'w');
--> statement-breakpoint
INSERT INTO codes_and_limits (subject, name, code_id, code_hash, attempts, created_at, expires_at)
	SELECT left(subject, 22), 'code:' || key, value ->> 0, value ->> 1, (value ->> 2)::int, (value ->> 3)::bigint, (value ->> 4)::bigint
	FROM ledgers, jsonb_each(state -> 'c');
--> statement-breakpoint
DROP TABLE ledgers;
--> statement-breakpoint
DROP TRIGGER brands_revised ON brands;
--> statement-breakpoint
DROP TRIGGER app_keys_revised ON app_keys;
--> statement-breakpoint
DROP TRIGGER resting_providers_revised ON resting_providers;
--> statement-breakpoint
DROP FUNCTION otpost_revise, otpost_now, otpost_steps, otpost_pruned, otpost_adopt, otpost_keep_message, otpost_lease;
