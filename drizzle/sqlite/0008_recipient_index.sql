CREATE TABLE `recipient_index` (
	`indexed_before` integer NOT NULL,
	`recipient_hash` text NOT NULL,
	`request_id` text NOT NULL,
	PRIMARY KEY(`indexed_before`, `recipient_hash`, `request_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
DROP INDEX `attempts_by_recipient`;--> statement-breakpoint
DROP INDEX `requests_by_recipient`;