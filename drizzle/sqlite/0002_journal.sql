CREATE TABLE `deliveries` (
	`request_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`at` integer NOT NULL,
	`app` text NOT NULL,
	`brand` text,
	`channel` text NOT NULL,
	`route` text,
	`provider` text NOT NULL,
	`template` text,
	`recipient_hash` text NOT NULL,
	`recipient` text NOT NULL,
	`position` integer,
	`segments` integer,
	`encoding` text,
	`outcome` text NOT NULL,
	`error_class` text,
	`reason` text,
	`vendor_id` text,
	`receipt_key` text,
	`duration_ms` integer NOT NULL,
	PRIMARY KEY(`request_id`, `attempt`),
	CONSTRAINT "deliveries_channel" CHECK("deliveries"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "deliveries_outcome" CHECK("deliveries"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `deliveries_by_recipient` ON `deliveries` (`recipient_hash`);--> statement-breakpoint
CREATE TABLE `receipts` (
	`key` text PRIMARY KEY NOT NULL,
	`status` text NOT NULL,
	`reason` text,
	`at` integer NOT NULL,
	CONSTRAINT "receipts_status" CHECK("receipts"."status" IN ('pending', 'failed', 'delivered'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `receipts_by_time` ON `receipts` (`at`);--> statement-breakpoint
CREATE TABLE `stories` (
	`request_id` text PRIMARY KEY NOT NULL,
	`story` text NOT NULL,
	CONSTRAINT "stories_story" CHECK(json_type("stories"."story") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
ALTER TABLE `brands` ADD `entity_id` text;--> statement-breakpoint
ALTER TABLE `brands` ADD `registrations` text DEFAULT '{}' NOT NULL;