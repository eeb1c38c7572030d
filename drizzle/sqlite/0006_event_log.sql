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
	`route` text,
	`template` text,
	`position` integer,
	`segments` integer,
	`encoding` text,
	`error_class` text,
	`reason` text,
	`provider_message_id` text,
	`report_key` text,
	CONSTRAINT "requests_operation" CHECK("requests"."operation" IN ('send', 'resend', 'verify', 'notify')),
	CONSTRAINT "requests_channel" CHECK("requests"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "requests_outcome" CHECK("requests"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
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
	PRIMARY KEY(`request_id`, `attempt`),
	CONSTRAINT "attempts_channel" CHECK("attempts"."channel" IN ('SMS', 'EMAIL')),
	CONSTRAINT "attempts_outcome" CHECK("attempts"."outcome" IN ('accepted', 'rejected', 'retryable', 'unknown', 'skipped'))
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
CREATE TABLE `stats` (
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
-- A story was a JSON array: at, operation, app, brand, channel, recipient, recipients, limits, end, recipient hash. A limit
-- in it was [limit, max, used, endsAt, refused], the end [status, error, message, durationMs]. The limits
-- become text: limit used/max until expiry refused, separated by commas.
INSERT INTO `requests` (
	`request_id`, `at`, `operation`, `app`, `brand`, `channel`, `recipient`, `recipients`, `recipient_hash`, `limits`,
	`status`, `error`, `message`, `duration_ms`, `attempt_at`, `provider`, `outcome`, `attempt_duration_ms`, `route`,
	`template`, `position`, `segments`, `encoding`, `error_class`, `reason`, `provider_message_id`, `report_key`
)
SELECT
	`stories`.`request_id`, `story` ->> '$[0]', `story` ->> '$[1]', `story` ->> '$[2]', `story` ->> '$[3]',
	coalesce(`story` ->> '$[4]', `channel`), coalesce(`story` ->> '$[5]', `recipient`), `story` ->> '$[6]',
	coalesce(`recipient_hash`, `story` ->> '$[9]'),
	(
		SELECT coalesce(group_concat(
			(`value` ->> 0) || ' ' || coalesce(`value` ->> 2, '?') || '/' || (`value` ->> 1)
			|| coalesce(' until ' || (`value` ->> 3), '') || iif(`value` ->> 4, ' refused', ''), ', '
		), '')
		FROM json_each(`story`, '$[7]')
	),
	`story` ->> '$[8][0]', `story` ->> '$[8][1]', `story` ->> '$[8][2]', `story` ->> '$[8][3]',
	`at`, `provider`, `outcome`, `duration_ms`, `route`, `template`, `position`, `segments`, `encoding`, `error_class`,
	`reason`, `vendor_id`, `receipt_key`
FROM `stories` LEFT JOIN `deliveries` ON `deliveries`.`request_id` = `stories`.`request_id` AND `attempt` = 1;
--> statement-breakpoint
INSERT INTO `attempts` (
	`request_id`, `attempt`, `at`, `app`, `brand`, `channel`, `recipient`, `recipient_hash`, `provider`, `outcome`,
	`duration_ms`, `route`, `template`, `position`, `segments`, `encoding`, `error_class`, `reason`,
	`provider_message_id`, `report_key`
)
SELECT
	`request_id`, `attempt`, `at`, `app`, `brand`, `channel`, `recipient`, `recipient_hash`, `provider`, `outcome`,
	`duration_ms`, `route`, `template`, `position`, `segments`, `encoding`, `error_class`, `reason`, `vendor_id`,
	`receipt_key`
FROM `deliveries` WHERE `attempt` > 1 OR `request_id` NOT IN (SELECT `request_id` FROM `stories`);
--> statement-breakpoint
INSERT INTO `delivery_reports` (`key`, `status`, `reason`, `at`) SELECT `key`, `status`, `reason`, `at` FROM `receipts`;
--> statement-breakpoint
INSERT INTO `stats` (`step_ms`, `at`, `kind`, `channel`, `brand`, `provider`, `detail`, `count`)
SELECT `step_ms`, `at`, `kind`, `channel`, `brand`, `provider`, `detail`, `count` FROM `tallies`;
--> statement-breakpoint
DROP TABLE `stories`;--> statement-breakpoint
DROP TABLE `deliveries`;--> statement-breakpoint
DROP TABLE `receipts`;--> statement-breakpoint
DROP TABLE `tallies`;--> statement-breakpoint
-- After the rows, which is quicker than before them.
CREATE INDEX `requests_by_recipient` ON `requests` (`recipient_hash`) WHERE outcome IS NOT NULL;--> statement-breakpoint
CREATE INDEX `attempts_by_recipient` ON `attempts` (`recipient_hash`);--> statement-breakpoint
CREATE INDEX `delivery_reports_by_time` ON `delivery_reports` (`at`);
