ALTER TABLE "events" ADD COLUMN "tried_at" bigint;--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "previous_secrets" jsonb DEFAULT '[]'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_previous_secrets" CHECK (jsonb_typeof("webhooks"."previous_secrets") = 'array');--> statement-breakpoint
ALTER TABLE "notify_jobs" ADD COLUMN "app_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX "notify_jobs_by_app" ON "notify_jobs" USING btree ("state","app_id","due_at");--> statement-breakpoint
CREATE TABLE "price_lists" (
	"provider" text COLLATE "C" PRIMARY KEY NOT NULL,
	"generation" integer,
	"next" integer
);
--> statement-breakpoint
ALTER TABLE "prices" ADD COLUMN "generation" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "prices" ALTER COLUMN "generation" DROP DEFAULT;--> statement-breakpoint
ALTER TABLE "prices" DROP CONSTRAINT "prices_prefix_provider_pk";--> statement-breakpoint
ALTER TABLE "prices" ADD CONSTRAINT "prices_generation_provider_prefix_pk" PRIMARY KEY("generation","provider","prefix");--> statement-breakpoint
INSERT INTO "price_lists"("provider", "generation") SELECT DISTINCT "provider", 0 FROM "prices";--> statement-breakpoint
ALTER TABLE "requests" ADD COLUMN "unknown_fields" text;