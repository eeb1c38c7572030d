CREATE TABLE `ledgers` (
	`subject` text PRIMARY KEY NOT NULL,
	`ends_at` integer NOT NULL,
	`state` text NOT NULL,
	CONSTRAINT "ledgers_state" CHECK(json_type("ledgers"."state") = 'object')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
-- Open limits move over. Codes do not, since their hashes are made in another way now: within their five minutes they
-- have to be asked for again.
INSERT INTO `ledgers` (`subject`, `ends_at`, `state`)
	SELECT `subject`, max(`ends_at`), json_object('windows', json_group_array(json_array(`name`, `count`, `ends_at`)))
	FROM `windows` GROUP BY `subject`;
--> statement-breakpoint
DROP TABLE `otps`;--> statement-breakpoint
DROP TABLE `windows`;
