CREATE TABLE `alert_deliveries` (
	`key` text NOT NULL,
	`channel` text NOT NULL,
	`tries` integer NOT NULL,
	`due_at` integer NOT NULL,
	PRIMARY KEY(`key`, `channel`),
	CONSTRAINT "alert_deliveries_channel" CHECK("alert_deliveries"."channel" IN ('email', 'webhook'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `alerts` (
	`key` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`kind` text NOT NULL,
	`title` text NOT NULL,
	`text` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `app_brands` (
	`app_id` text NOT NULL,
	`brand_slug` text NOT NULL,
	PRIMARY KEY(`app_id`, `brand_slug`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `apps` (
	`app_id` text PRIMARY KEY NOT NULL,
	`allows_otp` integer NOT NULL,
	`allows_notify` integer NOT NULL,
	`per_minute` integer,
	CONSTRAINT "apps_flags" CHECK("apps"."allows_otp" IN (0, 1) AND "apps"."allows_notify" IN (0, 1))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `budgets` (
	`scope` text PRIMARY KEY NOT NULL,
	`period` text NOT NULL,
	`amount_micros` integer NOT NULL,
	`currency` text NOT NULL,
	`alert_at` text NOT NULL,
	`stops` integer NOT NULL,
	`lifted_until` integer,
	`counts_from` integer NOT NULL,
	CONSTRAINT "budgets_period" CHECK("budgets"."period" IN ('day', 'month')),
	CONSTRAINT "budgets_flags" CHECK("budgets"."stops" IN (0, 1)),
	CONSTRAINT "budgets_alerts" CHECK(json_type("budgets"."alert_at") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `destination_rules` (
	`rule` text NOT NULL,
	`brand_slug` text NOT NULL,
	`action` text NOT NULL,
	`providers` text NOT NULL,
	`sender` text,
	`route` text,
	PRIMARY KEY(`rule`, `brand_slug`),
	CONSTRAINT "destination_rules_action" CHECK("destination_rules"."action" IN ('allow', 'monitor', 'block')),
	CONSTRAINT "destination_rules_route" CHECK("destination_rules"."route" IN ('plain', 'template')),
	CONSTRAINT "destination_rules_providers" CHECK(json_type("destination_rules"."providers") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `guard_buckets` (
	`kind` text NOT NULL,
	`key` text NOT NULL,
	`node` text NOT NULL,
	`level` real NOT NULL,
	`sent` real NOT NULL,
	`verified` real NOT NULL,
	`updated_at` integer NOT NULL,
	PRIMARY KEY(`kind`, `key`, `node`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `guard_buckets_by_time` ON `guard_buckets` (`updated_at`);--> statement-breakpoint
CREATE TABLE `guard_prefixes` (
	`prefix` text NOT NULL,
	`by` text NOT NULL,
	`action` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`prefix`, `by`),
	CONSTRAINT "guard_prefixes_by" CHECK("guard_prefixes"."by" IN ('guard', 'operator')),
	CONSTRAINT "guard_prefixes_action" CHECK("guard_prefixes"."action" IN ('allow', 'block'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `prices` (
	`prefix` text NOT NULL,
	`provider` text NOT NULL,
	`price_micros` integer NOT NULL,
	`currency` text NOT NULL,
	PRIMARY KEY(`prefix`, `provider`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `revision` (
	`id` integer PRIMARY KEY NOT NULL,
	`number` integer NOT NULL,
	CONSTRAINT "revision_one_row" CHECK("revision"."id" = 1)
) STRICT;
--> statement-breakpoint
INSERT INTO `revision` (`id`, `number`) VALUES (1, 1);
--> statement-breakpoint
CREATE TABLE `verified_numbers` (
	`subject` text PRIMARY KEY NOT NULL,
	`verified_at` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `attempts` ADD `country` text;--> statement-breakpoint
ALTER TABLE `codes_and_limits` ADD `provider_message_id` text;--> statement-breakpoint
ALTER TABLE `requests` ADD `reference` text;--> statement-breakpoint
ALTER TABLE `requests` ADD `guard` text;--> statement-breakpoint
ALTER TABLE `requests` ADD `country` text;