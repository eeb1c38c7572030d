CREATE TABLE `apps` (
	`app_id` text PRIMARY KEY NOT NULL,
	`key_sha256` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	CONSTRAINT "apps_key" CHECK(length("apps"."key_sha256") = 43)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `brands` (
	`slug` text PRIMARY KEY NOT NULL,
	`display_name` text NOT NULL,
	`name_key` text NOT NULL,
	`status` text NOT NULL,
	`notify_templates` text NOT NULL,
	`dlt_enabled` integer NOT NULL,
	`login_id_enabled` integer NOT NULL,
	`domain` text,
	CONSTRAINT "brands_status" CHECK("brands"."status" IN ('pending', 'active', 'suspended')),
	CONSTRAINT "brands_flags" CHECK("brands"."dlt_enabled" IN (0, 1) AND "brands"."login_id_enabled" IN (0, 1)),
	CONSTRAINT "brands_notify_templates" CHECK(json_type("brands"."notify_templates") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `brands_by_name` ON `brands` (`name_key`);--> statement-breakpoint
CREATE TABLE `integration_requests` (
	`id` text PRIMARY KEY NOT NULL,
	`created_at` integer NOT NULL,
	`status` text NOT NULL,
	`company_name` text NOT NULL,
	`contact_name` text NOT NULL,
	`contact_email` text NOT NULL,
	`brand_name` text NOT NULL,
	`channels` text NOT NULL,
	`website` text,
	`use_case` text,
	CONSTRAINT "integration_requests_status" CHECK("integration_requests"."status" IN ('pending', 'approved', 'rejected')),
	CONSTRAINT "integration_requests_channels" CHECK(json_type("integration_requests"."channels") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `otps` (
	`subject` text NOT NULL,
	`brand_slug` text NOT NULL,
	`id` text NOT NULL,
	`salt` text NOT NULL,
	`hash` text NOT NULL,
	`attempts` integer NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`subject`, `brand_slug`),
	CONSTRAINT "otps_attempts" CHECK("otps"."attempts" BETWEEN 0 AND 3),
	CONSTRAINT "otps_lifetime" CHECK("otps"."expires_at" > "otps"."created_at"),
	CONSTRAINT "otps_hash" CHECK(length("otps"."hash") = 43 AND length("otps"."salt") = 22)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `otps_by_expiry` ON `otps` (`expires_at`);--> statement-breakpoint
CREATE TABLE `outbox` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`created_at` integer NOT NULL,
	`channel` text NOT NULL,
	`recipient` text NOT NULL,
	`identity` text NOT NULL,
	`route` text,
	`brand_slug` text,
	`brand_name` text,
	`subject` text,
	`text` text NOT NULL,
	`html` text,
	`template_key` text,
	`variables` text,
	`request_id` text NOT NULL,
	CONSTRAINT "outbox_channel" CHECK("outbox"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "outbox_route" CHECK("outbox"."route" IN ('plain', 'template'))
) STRICT;
--> statement-breakpoint
CREATE INDEX `outbox_by_identity` ON `outbox` (`identity`,`id`);--> statement-breakpoint
CREATE INDEX `outbox_by_creation` ON `outbox` (`created_at`);--> statement-breakpoint
CREATE TABLE `windows` (
	`subject` text NOT NULL,
	`name` text NOT NULL,
	`count` integer NOT NULL,
	`ends_at` integer NOT NULL,
	PRIMARY KEY(`subject`, `name`),
	CONSTRAINT "windows_count" CHECK("windows"."count" >= 1)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `windows_by_end` ON `windows` (`ends_at`);