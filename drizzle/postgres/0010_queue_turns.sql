ALTER TABLE "notify_jobs" ADD COLUMN "app_id" text DEFAULT '' NOT NULL;--> statement-breakpoint
CREATE INDEX "notify_jobs_by_app" ON "notify_jobs" USING btree ("state","app_id","due_at");