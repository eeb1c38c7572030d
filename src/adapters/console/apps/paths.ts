export function appHref(appId: string): string {
  return `/admin/apps/app?app=${encodeURIComponent(appId)}`
}
