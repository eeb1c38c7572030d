CREATE TABLE `operators` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`password_hash` text,
	`totp_secret` text,
	`totp_step` integer DEFAULT 0 NOT NULL,
	`created_at` integer NOT NULL,
	`signed_in_at` integer,
	`failed_sign_ins` integer DEFAULT 0 NOT NULL,
	CONSTRAINT "operators_role" CHECK("operators"."role" IN ('viewer', 'operator', 'owner'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `operators_email_unique` ON `operators` (`email`);--> statement-breakpoint
CREATE TABLE `passkeys` (
	`credential_id` text PRIMARY KEY NOT NULL,
	`operator_id` text NOT NULL,
	`name` text NOT NULL,
	`public_key` text NOT NULL,
	`sign_count` integer NOT NULL,
	`transports` text NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer DEFAULT 0 NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `recovery_codes` (
	`operator_id` text NOT NULL,
	`code_sha256` text NOT NULL,
	PRIMARY KEY(`operator_id`, `code_sha256`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `attempts` ADD `lang` text;--> statement-breakpoint
ALTER TABLE `console_links` ADD `operator_id` text;--> statement-breakpoint
ALTER TABLE `console_sessions` ADD `operator_id` text;--> statement-breakpoint
ALTER TABLE `console_sessions` ADD `confirmed_at` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `console_sessions` ADD `client_ip` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `console_sessions` ADD `device` text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE `requests` ADD `lang` text;