CREATE TABLE `codes_and_limits` (
	`subject` text NOT NULL,
	`name` text NOT NULL,
	`count` integer,
	`code_id` text,
	`code_hash` text,
	`attempts` integer,
	`created_at` integer,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`subject`, `name`),
	CONSTRAINT "codes_and_limits_kind" CHECK(("codes_and_limits"."count" IS NULL) <> ("codes_and_limits"."code_hash" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."code_id" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."attempts" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."created_at" IS NULL))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
-- Open windows and live codes move over: a window was stored as [name, count, endsAt], a code as
-- [brandSlug, id, hash, attempts, createdAt, expiresAt]. Of the keyed hash of a recipient or IP address, which has 43
-- characters, 22 are stored from now on.
INSERT INTO `codes_and_limits` (`subject`, `name`, `count`, `expires_at`)
	SELECT iif(`subject` LIKE 'app:%', `subject`, substr(`subject`, 1, 22)), each.value ->> 0, each.value ->> 1, each.value ->> 2
	FROM `ledgers`, json_each(`state`, '$.windows') AS each;
--> statement-breakpoint
INSERT INTO `codes_and_limits` (`subject`, `name`, `code_id`, `code_hash`, `attempts`, `created_at`, `expires_at`)
	SELECT substr(`subject`, 1, 22), 'code:' || (each.value ->> 0), each.value ->> 1, each.value ->> 2, each.value ->> 3, each.value ->> 4, each.value ->> 5
	FROM `ledgers`, json_each(`state`, '$.codes') AS each;
--> statement-breakpoint
DROP TABLE `ledgers`;
