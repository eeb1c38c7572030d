CREATE TABLE `app_keys` (
	`key_sha256` text PRIMARY KEY NOT NULL,
	`app_id` text NOT NULL,
	`last_four` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	`last_used_at` integer,
	CONSTRAINT "app_keys_key" CHECK(length("app_keys"."key_sha256") = 43)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `app_keys_by_app` ON `app_keys` (`app_id`);--> statement-breakpoint
CREATE TABLE `audit` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`by` text NOT NULL,
	`name` text NOT NULL,
	`action` text NOT NULL,
	`target` text NOT NULL,
	`details` text NOT NULL,
	CONSTRAINT "audit_by" CHECK("audit"."by" IN ('command', 'console')),
	CONSTRAINT "audit_details" CHECK(json_type("audit"."details") = 'object')
) STRICT;
--> statement-breakpoint
CREATE TABLE `console_links` (
	`token_sha256` text PRIMARY KEY NOT NULL,
	`expires_at` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `console_sessions` (
	`token_sha256` text PRIMARY KEY NOT NULL,
	`started_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`by` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `tallies` (
	`step_ms` integer NOT NULL,
	`at` integer NOT NULL,
	`kind` text NOT NULL,
	`channel` text NOT NULL,
	`brand` text NOT NULL,
	`provider` text NOT NULL,
	`detail` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`step_ms`, `at`, `kind`, `channel`, `brand`, `provider`, `detail`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `app_keys` (`key_sha256`, `app_id`, `last_four`, `created_at`, `revoked_at`) SELECT `key_sha256`, `app_id`, 'unknown', `created_at`, `revoked_at` FROM `apps`;--> statement-breakpoint
DROP TABLE `apps`;--> statement-breakpoint
ALTER TABLE `integration_requests` ADD `decided_at` integer;--> statement-breakpoint
ALTER TABLE `integration_requests` ADD `decided_by` text;--> statement-breakpoint
ALTER TABLE `integration_requests` ADD `reason` text;--> statement-breakpoint
ALTER TABLE `integration_requests` ADD `app_id` text;--> statement-breakpoint
ALTER TABLE `integration_requests` ADD `brand_slug` text;