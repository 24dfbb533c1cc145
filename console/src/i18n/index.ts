import i18next, { type BackendModule, type FormatterModule, type ResourceKey } from "i18next";
import { initReactI18next } from "react-i18next";
import english from "./en/common.json";
import chinese from "./zh-CN/common.json";

export const LANGUAGES = ["zh-CN", "en"] as const;
export type Language = (typeof LANGUAGES)[number];

const STORED = "horai-language";
const files = import.meta.glob<ResourceKey>(["./*/*.json", "!./*/common.json"], { import: "default" });

/** A page's texts come with the page: one small file per language and namespace. What the server says is English by itself. */
const backend: BackendModule = {
  type: "backend",
  init: () => undefined,
  read: async (language, namespace, done) => {
    try {
      done(null, (await files[`./${language}/${namespace}.json`]?.()) ?? {});
    } catch (error) {
      done(error as Error, null);
    }
  },
};

function remembered(): Language | null {
  try {
    return LANGUAGES.find((language) => language === localStorage.getItem(STORED)) ?? null;
  } catch {
    return null;
  }
}

function preferred(): Language {
  return remembered() ?? (navigator.language.toLowerCase().startsWith("zh") ? "zh-CN" : "en");
}

/** Speaks a language from now on, here and on the next visit. */
export async function speak(language: Language): Promise<void> {
  localStorage.setItem(STORED, language);
  await i18next.changeLanguage(language);
}

/** Every number in a text has the separators of the language: 43,200 fires. */
const grouping: FormatterModule = {
  type: "formatter",
  init: () => undefined,
  add: () => undefined,
  addCached: () => undefined,
  format: (value: unknown, _format, language) => (typeof value === "number" ? value.toLocaleString(language) : (value as string)),
};

i18next.on("languageChanged", (language) => {
  document.documentElement.lang = language;
});

export const ready = i18next
  .use(backend)
  .use(grouping)
  .use(initReactI18next)
  .init({
    lng: preferred(),
    fallbackLng: false,
    supportedLngs: LANGUAGES,
    defaultNS: "common",
    ns: ["common", "said"],
    resources: { en: { common: english }, "zh-CN": { common: chinese } },
    partialBundledLanguages: true,
    interpolation: { escapeValue: false, alwaysFormat: true },
    returnNull: false,
  });

export { default as i18next } from "i18next";
export { instancesIn, inWords, wordsOf } from "./said";
