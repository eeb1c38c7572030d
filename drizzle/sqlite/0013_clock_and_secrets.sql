ALTER TABLE `events` ADD `tried_at` integer;--> statement-breakpoint
ALTER TABLE `webhooks` ADD `previous_secrets` text DEFAULT '[]' NOT NULL CONSTRAINT "webhooks_previous_secrets" CHECK(json_type("previous_secrets") = 'array');
