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
CREATE TABLE `app_keys` (
	`key_sha256` text PRIMARY KEY NOT NULL,
	`app_id` text NOT NULL,
	`last_four` text NOT NULL,
	`created_at` integer NOT NULL,
	`revoked_at` integer,
	`last_used_at` integer,
	`last_used_from` text,
	CONSTRAINT "app_keys_key" CHECK(length("app_keys"."key_sha256") = 43)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `app_keys_by_app` ON `app_keys` (`app_id`);
--> statement-breakpoint
CREATE TABLE `apps` (
	`app_id` text PRIMARY KEY NOT NULL,
	`allows_otp` integer NOT NULL,
	`allows_notify` integer NOT NULL,
	`per_minute` integer,
	`new_country_sms_per_day` integer,
	CONSTRAINT "apps_flags" CHECK("apps"."allows_otp" IN (0, 1) AND "apps"."allows_notify" IN (0, 1))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `attempts` (
	`request_id` text NOT NULL,
	`attempt` integer NOT NULL,
	`at` integer NOT NULL,
	`app` text NOT NULL,
	`brand` text,
	`channel` text NOT NULL,
	`recipient` text NOT NULL,
	`recipient_hash` text NOT NULL,
	`provider` text NOT NULL,
	`outcome` text NOT NULL,
	`duration_ms` integer NOT NULL,
	`route` text,
	`template` text,
	`position` integer,
	`segments` integer,
	`encoding` text,
	`error_class` text,
	`reason` text,
	`provider_message_id` text,
	`report_key` text,
	`country` text,
	`lang` text,
	PRIMARY KEY(`request_id`, `attempt`),
	CONSTRAINT "attempts_channel" CHECK("attempts"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "attempts_outcome" CHECK("attempts"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `audit` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at` integer NOT NULL,
	`by` text NOT NULL,
	`name` text NOT NULL,
	`action` text NOT NULL,
	`target` text NOT NULL,
	`details` text NOT NULL,
	CONSTRAINT "audit_by" CHECK("audit"."by" IN ('command', 'console', 'token')),
	CONSTRAINT "audit_details" CHECK(json_type("audit"."details") = 'object')
) STRICT;
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
	`entity_id` text,
	`registrations` text NOT NULL,
	`lang` text NOT NULL,
	`android_hash` text,
	`logo_url` text,
	`link_url` text,
	`color` text,
	`dlt_allow_list` text NOT NULL,
	CONSTRAINT "brands_status" CHECK("brands"."status" IN ('pending', 'active', 'suspended')),
	CONSTRAINT "brands_notify_templates" CHECK(json_type("brands"."notify_templates") = 'array'),
	CONSTRAINT "brands_registrations" CHECK(json_type("brands"."registrations") = 'object'),
	CONSTRAINT "brands_dlt_allow_list" CHECK(json_type("brands"."dlt_allow_list") = 'array'),
	CONSTRAINT "brands_flags" CHECK("brands"."dlt_enabled" IN (0, 1) AND "brands"."login_id_enabled" IN (0, 1))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `brands_by_name` ON `brands` (`name_key`);
--> statement-breakpoint
CREATE TABLE `budgets` (
	`scope` text NOT NULL,
	`of` text NOT NULL,
	`period` text NOT NULL,
	`amount_micros` integer NOT NULL,
	`currency` text NOT NULL,
	`alert_at` text NOT NULL,
	`stops` integer NOT NULL,
	`lifted_until` integer,
	`counts_from` integer NOT NULL,
	PRIMARY KEY(`scope`, `of`),
	CONSTRAINT "budgets_of" CHECK("budgets"."of" IN ('all', 'codes', 'notifications')),
	CONSTRAINT "budgets_period" CHECK("budgets"."period" IN ('day', 'month')),
	CONSTRAINT "budgets_alert_at" CHECK(json_type("budgets"."alert_at") = 'array'),
	CONSTRAINT "budgets_flags" CHECK("budgets"."stops" IN (0, 1))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `codes_and_limits` (
	`subject` text NOT NULL,
	`name` text NOT NULL,
	`count` integer,
	`code_id` text,
	`code_hash` text,
	`attempts` integer,
	`created_at` integer,
	`expires_at` integer NOT NULL,
	`provider` text,
	`provider_message_id` text,
	PRIMARY KEY(`subject`, `name`),
	CONSTRAINT "codes_and_limits_kind" CHECK(("codes_and_limits"."count" IS NULL) <> ("codes_and_limits"."code_hash" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."code_id" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."attempts" IS NULL)
        AND ("codes_and_limits"."code_hash" IS NULL) = ("codes_and_limits"."created_at" IS NULL))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `console_links` (
	`token_sha256` text PRIMARY KEY NOT NULL,
	`expires_at` integer NOT NULL,
	`operator_id` text
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `console_sessions` (
	`token_sha256` text PRIMARY KEY NOT NULL,
	`started_at` integer NOT NULL,
	`last_seen_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	`by` text NOT NULL,
	`operator_id` text,
	`confirmed_at` integer NOT NULL,
	`client_ip` text NOT NULL,
	`device` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `delivery_reports` (
	`key` text PRIMARY KEY NOT NULL,
	`status` text NOT NULL,
	`reason` text,
	`at` integer NOT NULL,
	CONSTRAINT "delivery_reports_status" CHECK("delivery_reports"."status" IN ('pending', 'failed', 'delivered'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `delivery_reports_by_time` ON `delivery_reports` (`at`);
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
	CONSTRAINT "destination_rules_providers" CHECK(json_type("destination_rules"."providers") = 'array'),
	CONSTRAINT "destination_rules_route" CHECK("destination_rules"."route" IN ('plain', 'template'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
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
	`tries` integer NOT NULL,
	`due_at` integer NOT NULL,
	`tried_at` integer,
	`http_status` integer,
	`error` text,
	`answer` text,
	`ended_at` integer,
	CONSTRAINT "events_status" CHECK("events"."status" IN ('delivered', 'failed', 'unknown')),
	CONSTRAINT "events_state" CHECK("events"."state" IN ('new', 'waiting', 'delivered', 'failed')),
	CONSTRAINT "events_subject" CHECK("events"."request_id" IS NOT NULL OR "events"."report_key" IS NOT NULL)
) STRICT;
--> statement-breakpoint
CREATE INDEX `events_by_state` ON `events` (`state`,`due_at`,`app_id`);
--> statement-breakpoint
CREATE INDEX `events_by_app` ON `events` (`app_id`,`id`);
--> statement-breakpoint
CREATE INDEX `events_by_request` ON `events` (`request_id`);
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
CREATE INDEX `guard_buckets_by_time` ON `guard_buckets` (`updated_at`);
--> statement-breakpoint
CREATE TABLE `guard_mode` (
	`id` integer PRIMARY KEY NOT NULL,
	`mode` text NOT NULL,
	`temporary_mode` text,
	`since` integer,
	`until` integer,
	CONSTRAINT "guard_mode_mode" CHECK("guard_mode"."mode" IN ('off', 'record', 'deny')),
	CONSTRAINT "guard_mode_temporary_mode" CHECK("guard_mode"."temporary_mode" IN ('off', 'record', 'deny')),
	CONSTRAINT "guard_mode_one_row" CHECK("guard_mode"."id" = 1)
) STRICT;
--> statement-breakpoint
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
CREATE INDEX `idempotency_keys_by_expiry` ON `idempotency_keys` (`expires_at`);
--> statement-breakpoint
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
	`decided_at` integer,
	`decided_by` text,
	`reason` text,
	`app_id` text,
	`brand_slug` text,
	CONSTRAINT "integration_requests_status" CHECK("integration_requests"."status" IN ('pending', 'approved', 'rejected')),
	CONSTRAINT "integration_requests_channels" CHECK(json_type("integration_requests"."channels") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `key_fingerprints` (
	`fingerprint` text PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `ladders` (
	`request_id` text PRIMARY KEY NOT NULL,
	`subject` text NOT NULL,
	`sealed` text NOT NULL,
	`ways` text NOT NULL,
	`report_key` text,
	`report_keys` text NOT NULL,
	`causes` text NOT NULL,
	`sent_at` integer,
	`attempts` integer NOT NULL,
	`due_at` integer,
	`ended` text,
	`expires_at` integer NOT NULL,
	CONSTRAINT "ladders_ended" CHECK(("ladders"."ended" IS NULL) = ("ladders"."due_at" IS NOT NULL))
) STRICT;
--> statement-breakpoint
CREATE INDEX `ladders_by_due` ON `ladders` (`due_at`);
--> statement-breakpoint
CREATE INDEX `ladders_by_report` ON `ladders` (`report_key`);
--> statement-breakpoint
CREATE INDEX `ladders_by_subject` ON `ladders` (`subject`);
--> statement-breakpoint
CREATE TABLE `notify_jobs` (
	`request_id` text NOT NULL,
	`app_id` text NOT NULL,
	`position` integer NOT NULL,
	`state` text NOT NULL,
	`recipient` text,
	`recipient_hash` text NOT NULL,
	`masked` text NOT NULL,
	`tries` integer NOT NULL,
	`attempts` integer NOT NULL,
	`due_at` integer NOT NULL,
	`owner` text,
	`updated_at` integer NOT NULL,
	`reason` text,
	PRIMARY KEY(`request_id`, `position`),
	CONSTRAINT "notify_jobs_state" CHECK("notify_jobs"."state" IN ('queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE INDEX `notify_jobs_by_state` ON `notify_jobs` (`state`,`due_at`);
--> statement-breakpoint
CREATE INDEX `notify_jobs_by_app` ON `notify_jobs` (`state`,`app_id`,`due_at`);
--> statement-breakpoint
CREATE INDEX `notify_jobs_by_recipient` ON `notify_jobs` (`recipient_hash`);
--> statement-breakpoint
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
CREATE TABLE `operators` (
	`id` text PRIMARY KEY NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`password_hash` text,
	`totp_secret` text,
	`totp_step` integer NOT NULL,
	`created_at` integer NOT NULL,
	`signed_in_at` integer,
	`failed_sign_ins` integer NOT NULL,
	CONSTRAINT "operators_role" CHECK("operators"."role" IN ('viewer', 'operator', 'owner'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE UNIQUE INDEX `operators_email_unique` ON `operators` (`email`);
--> statement-breakpoint
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
	CONSTRAINT "outbox_route" CHECK("outbox"."route" IN ('plain', 'template')),
	CONSTRAINT "outbox_variables" CHECK(json_type("outbox"."variables") = 'object')
) STRICT;
--> statement-breakpoint
CREATE INDEX `outbox_by_identity` ON `outbox` (`identity`,`id`);
--> statement-breakpoint
CREATE INDEX `outbox_by_creation` ON `outbox` (`created_at`);
--> statement-breakpoint
CREATE TABLE `passkeys` (
	`credential_id` text PRIMARY KEY NOT NULL,
	`operator_id` text NOT NULL,
	`name` text NOT NULL,
	`public_key` text NOT NULL,
	`sign_count` integer NOT NULL,
	`transports` text NOT NULL,
	`created_at` integer NOT NULL,
	`used_at` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `price_lists` (
	`provider` text PRIMARY KEY NOT NULL,
	`generation` integer,
	`next` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `prices` (
	`generation` integer NOT NULL,
	`provider` text NOT NULL,
	`prefix` text NOT NULL,
	`price_micros` integer NOT NULL,
	`currency` text NOT NULL,
	PRIMARY KEY(`generation`, `provider`, `prefix`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `provider_pauses` (
	`provider` text PRIMARY KEY NOT NULL,
	`until` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `recipient_index` (
	`indexed_before` integer NOT NULL,
	`recipient_hash` text NOT NULL,
	`request_id` text NOT NULL,
	PRIMARY KEY(`indexed_before`, `recipient_hash`, `request_id`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `recovery_codes` (
	`operator_id` text NOT NULL,
	`code_sha256` text NOT NULL,
	PRIMARY KEY(`operator_id`, `code_sha256`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `requests` (
	`request_id` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`operation` text NOT NULL,
	`app` text NOT NULL,
	`brand` text,
	`channel` text,
	`recipient` text,
	`recipients` integer,
	`recipient_hash` text,
	`limits` text NOT NULL,
	`status` integer,
	`error` text,
	`message` text,
	`duration_ms` integer,
	`attempt_at` integer,
	`provider` text,
	`outcome` text,
	`attempt_duration_ms` integer,
	`reference` text,
	`guard` text,
	`unknown_fields` text,
	`route` text,
	`template` text,
	`position` integer,
	`segments` integer,
	`encoding` text,
	`error_class` text,
	`reason` text,
	`provider_message_id` text,
	`report_key` text,
	`country` text,
	`lang` text,
	CONSTRAINT "requests_operation" CHECK("requests"."operation" IN ('send', 'resend', 'verify', 'notify', 'relay')),
	CONSTRAINT "requests_channel" CHECK("requests"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "requests_outcome" CHECK("requests"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `review_numbers` (
	`subject` text NOT NULL,
	`brand_slug` text NOT NULL,
	`keyed_code` text NOT NULL,
	`masked` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer NOT NULL,
	PRIMARY KEY(`subject`, `brand_slug`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `revision` (
	`id` integer PRIMARY KEY NOT NULL,
	`number` integer NOT NULL,
	CONSTRAINT "revision_one_row" CHECK("revision"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `stats` (
	`step_ms` integer NOT NULL,
	`at` integer NOT NULL,
	`kind` text NOT NULL,
	`channel` text NOT NULL,
	`brand` text NOT NULL,
	`provider` text NOT NULL,
	`detail` text NOT NULL,
	`app` text NOT NULL,
	`count` integer NOT NULL,
	PRIMARY KEY(`step_ms`, `at`, `kind`, `channel`, `brand`, `provider`, `detail`, `app`)
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `text_variables` (
	`brand_slug` text NOT NULL,
	`template_key` text NOT NULL,
	`position` integer NOT NULL,
	`name` text NOT NULL,
	`type` text NOT NULL,
	`max` integer NOT NULL,
	PRIMARY KEY(`brand_slug`, `template_key`, `position`),
	CONSTRAINT "text_variables_type" CHECK("text_variables"."type" IN ('text', 'number', 'date', 'datetime', 'url'))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `texts` (
	`brand_slug` text NOT NULL,
	`template_key` text NOT NULL,
	`channel` text NOT NULL,
	`lang` text NOT NULL,
	`is_draft` integer NOT NULL,
	`subject` text,
	`text` text NOT NULL,
	`html` text,
	`version` integer NOT NULL,
	`updated_at` integer NOT NULL,
	`variables` text,
	PRIMARY KEY(`brand_slug`, `template_key`, `channel`, `lang`, `is_draft`),
	CONSTRAINT "texts_channel" CHECK("texts"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "texts_variables" CHECK(json_type("texts"."variables") = 'array'),
	CONSTRAINT "texts_flags" CHECK("texts"."is_draft" IN (0, 1))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `verified_numbers` (
	`subject` text PRIMARY KEY NOT NULL,
	`verified_at` integer NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `webhooks` (
	`app_id` text PRIMARY KEY NOT NULL,
	`url` text NOT NULL,
	`secret` text NOT NULL,
	`previous_secrets` text NOT NULL,
	`event_types` text NOT NULL,
	`created_at` integer NOT NULL,
	`disabled_at` integer,
	CONSTRAINT "webhooks_previous_secrets" CHECK(json_type("webhooks"."previous_secrets") = 'array'),
	CONSTRAINT "webhooks_event_types" CHECK(json_type("webhooks"."event_types") = 'array')
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `incident_thresholds` (
	`id` integer PRIMARY KEY NOT NULL,
	`failed_percent` integer NOT NULL,
	`silent_minutes` integer NOT NULL,
	CONSTRAINT "incident_thresholds_one_row" CHECK("incident_thresholds"."id" = 1)
) STRICT;
--> statement-breakpoint
CREATE TABLE `acknowledgements` (
	`about` text PRIMARY KEY NOT NULL,
	`at` integer NOT NULL,
	`by` text NOT NULL
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `relays` (
	`name` text PRIMARY KEY NOT NULL,
	`kind` text NOT NULL,
	`brand_slug` text NOT NULL,
	`app_id` text,
	`sealed_secret` text NOT NULL,
	`user` text NOT NULL,
	`minutes` integer NOT NULL,
	`reports_verified` integer NOT NULL,
	`created_at` integer NOT NULL,
	CONSTRAINT "relays_flags" CHECK("relays"."reports_verified" IN (0, 1))
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
CREATE TABLE `manage_tokens` (
	`name` text PRIMARY KEY NOT NULL,
	`sha256` text NOT NULL,
	`role` text NOT NULL,
	`created_at` integer NOT NULL,
	`expires_at` integer
) STRICT, WITHOUT ROWID;
--> statement-breakpoint
INSERT INTO `revision` (`id`, `number`) VALUES (1, 1);
