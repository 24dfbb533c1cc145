declare global {
  // The name under which style-singleton (of Mantine's dialogs) looks for it.
  var __webpack_nonce__: string | undefined;
}

/** The nonce of this page: the policy lets in no style element without it. */
export function nonce(): string {
  return document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
}

globalThis.__webpack_nonce__ = nonce();
