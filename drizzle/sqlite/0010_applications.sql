CREATE TABLE `events` (
	`id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`type` text NOT NULL,
	`request_id` text,
	`report_key` text,
	`position` integer,
	`status` text,
	`reason` text,
	`state` text NOT NULL,
	`app_id` text,
	`brand` text,
	`channel` text,
	`recipient` text,
	`reference` text,
	`tries` integer DEFAULT 0 NOT NULL,
	`due_at` integer NOT NULL,
	`http_status` integer,
	`error` text,
	`ended_at` integer,
	CONSTRAINT "events_state" CHECK("events"."state" IN ('new', 'waiting', 'delivered', 'failed')),
	CONSTRAINT "events_status" CHECK("events"."status" IN ('delivered', 'failed', 'unknown')),
	CONSTRAINT "events_subject" CHECK("events"."request_id" IS NOT NULL OR "events"."report_key" IS NOT NULL)
) STRICT;
--> statement-breakpoint
CREATE INDEX `events_by_state` ON `events` (`state`,`due_at`,`app_id`);--> statement-breakpoint
CREATE INDEX `events_by_app` ON `events` (`app_id`,`id`);--> statement-breakpoint
CREATE INDEX `events_by_request` ON `events` (`request_id`);--> statement-breakpoint
CREATE TABLE `idempotency_keys` (
	`hash` text PRIMARY KEY NOT NULL,
	`request_id` text NOT NULL,
	`body_hash` text NOT NULL,
	`owner` text NOT NULL,
	`expires_at` integer NOT NULL,
	`status` integer,
	`answer` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `idempotency_keys_by_expiry` ON `idempotency_keys` (`expires_at`);--> statement-breakpoint
CREATE TABLE `notify_jobs` (
	`request_id` text NOT NULL,
	`position` integer NOT NULL,
	`state` text NOT NULL,
	`recipient` text,
	`recipient_hash` text NOT NULL,
	`masked` text NOT NULL,
	`tries` integer DEFAULT 0 NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due_at` integer NOT NULL,
	`owner` text,
	`updated_at` integer NOT NULL,
	`reason` text,
	PRIMARY KEY(`request_id`, `position`),
	CONSTRAINT "notify_jobs_state" CHECK("notify_jobs"."state" IN ('queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `notify_jobs_by_state` ON `notify_jobs` (`state`,`due_at`);--> statement-breakpoint
CREATE INDEX `notify_jobs_by_recipient` ON `notify_jobs` (`recipient_hash`);--> statement-breakpoint
CREATE TABLE `notify_orders` (
	`request_id` text PRIMARY KEY NOT NULL,
	`app_id` text NOT NULL,
	`brand_slug` text,
	`channel` text NOT NULL,
	`reference` text,
	`content` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL
) STRICT;
--> statement-breakpoint
CREATE TABLE `webhooks` (
	`app_id` text PRIMARY KEY NOT NULL,
	`url` text NOT NULL,
	`secret` text NOT NULL,
	`event_types` text NOT NULL,
	`created_at` integer NOT NULL,
	`disabled_at` integer,
	CONSTRAINT "webhooks_event_types" CHECK(json_type("webhooks"."event_types") = 'array')
) STRICT, WITHOUT ROWID;
