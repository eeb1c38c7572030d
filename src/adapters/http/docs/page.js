// @ts-check

// Shows /openapi.json with Swagger UI. A script of its own, since the page's policy allows none within the page.
const dark = matchMedia('(prefers-color-scheme: dark)')
const followScheme = () => document.documentElement.classList.toggle('dark-mode', dark.matches)
dark.addEventListener('change', followScheme)
followScheme()

// @ts-expect-error The bundle, which comes before this script, makes it.
window.SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#api',
  layout: 'BaseLayout',
  // Otherwise the page calls a validator on the Internet.
  validatorUrl: null,
  deepLinking: true,
  docExpansion: 'list',
  defaultModelRendering: 'example',
  defaultModelExpandDepth: 2,
  defaultModelsExpandDepth: 0,
  displayRequestDuration: false,
  showExtensions: false,
})
