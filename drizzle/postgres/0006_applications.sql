CREATE TABLE "events" (
	"id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"at" bigint NOT NULL,
	"type" text NOT NULL,
	"request_id" text COLLATE "C",
	"report_key" text,
	"position" integer,
	"status" text,
	"reason" text,
	"state" text NOT NULL,
	"app_id" text COLLATE "C",
	"brand" text,
	"channel" text,
	"recipient" text,
	"reference" text,
	"tries" integer DEFAULT 0 NOT NULL,
	"due_at" bigint NOT NULL,
	"http_status" integer,
	"error" text,
	"ended_at" bigint,
	CONSTRAINT "events_state" CHECK ("events"."state" IN ('new', 'waiting', 'delivered', 'failed')),
	CONSTRAINT "events_status" CHECK ("events"."status" IN ('delivered', 'failed', 'unknown')),
	CONSTRAINT "events_subject" CHECK ("events"."request_id" IS NOT NULL OR "events"."report_key" IS NOT NULL)
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"hash" text COLLATE "C" PRIMARY KEY NOT NULL,
	"request_id" text COLLATE "C" NOT NULL,
	"body_hash" text NOT NULL,
	"owner" text NOT NULL,
	"expires_at" bigint NOT NULL,
	"status" integer,
	"answer" text
);
--> statement-breakpoint
CREATE TABLE "notify_jobs" (
	"request_id" text COLLATE "C" NOT NULL,
	"position" integer NOT NULL,
	"state" text NOT NULL,
	"recipient" text,
	"recipient_hash" text NOT NULL,
	"masked" text NOT NULL,
	"tries" integer DEFAULT 0 NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"due_at" bigint NOT NULL,
	"owner" text,
	"updated_at" bigint NOT NULL,
	"reason" text,
	CONSTRAINT "notify_jobs_request_id_position_pk" PRIMARY KEY("request_id","position"),
	CONSTRAINT "notify_jobs_state" CHECK ("notify_jobs"."state" IN ('queued', 'sending', 'accepted', 'failed', 'unknown', 'cancelled'))
);
--> statement-breakpoint
CREATE TABLE "notify_orders" (
	"request_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"app_id" text NOT NULL,
	"brand_slug" text,
	"channel" text NOT NULL,
	"reference" text,
	"content" text NOT NULL,
	"created_at" bigint NOT NULL,
	"expires_at" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"app_id" text COLLATE "C" PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"secret" text NOT NULL,
	"event_types" jsonb NOT NULL,
	"created_at" bigint NOT NULL,
	"disabled_at" bigint,
	CONSTRAINT "webhooks_event_types" CHECK (jsonb_typeof("webhooks"."event_types") = 'array')
);
--> statement-breakpoint
CREATE INDEX "events_by_state" ON "events" USING btree ("state","due_at","app_id");--> statement-breakpoint
CREATE INDEX "events_by_app" ON "events" USING btree ("app_id","id");--> statement-breakpoint
CREATE INDEX "events_by_request" ON "events" USING btree ("request_id");--> statement-breakpoint
CREATE INDEX "idempotency_keys_by_expiry" ON "idempotency_keys" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "notify_jobs_by_state" ON "notify_jobs" USING btree ("state","due_at");--> statement-breakpoint
CREATE INDEX "notify_jobs_by_recipient" ON "notify_jobs" USING btree ("recipient_hash");