ALTER TABLE `events` ADD `tried_at` integer;--> statement-breakpoint
ALTER TABLE `webhooks` ADD `previous_secrets` text DEFAULT '[]' NOT NULL CONSTRAINT "webhooks_previous_secrets" CHECK(json_type("previous_secrets") = 'array');--> statement-breakpoint
ALTER TABLE `notify_jobs` ADD `app_id` text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX `notify_jobs_by_app` ON `notify_jobs` (`state`,`app_id`,`due_at`);--> statement-breakpoint
CREATE TABLE `price_lists` (
	`provider` text PRIMARY KEY NOT NULL,
	`generation` integer,
	`next` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `__new_prices` (
	`generation` integer NOT NULL,
	`provider` text NOT NULL,
	`prefix` text NOT NULL,
	`price_micros` integer NOT NULL,
	`currency` text NOT NULL,
	PRIMARY KEY(`generation`, `provider`, `prefix`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `__new_prices`("generation", "provider", "prefix", "price_micros", "currency") SELECT 0, "provider", "prefix", "price_micros", "currency" FROM `prices`;--> statement-breakpoint
DROP TABLE `prices`;--> statement-breakpoint
ALTER TABLE `__new_prices` RENAME TO `prices`;--> statement-breakpoint
INSERT INTO `price_lists`("provider", "generation") SELECT DISTINCT "provider", 0 FROM `prices`;--> statement-breakpoint
ALTER TABLE `requests` ADD `unknown_fields` text;