import { quote } from "./codes.ts";

/** Why a text is no OnCalendar expression: follows "not an OnCalendar expression:". */
export const calendarSays = {
  empty: "it is empty",
  timeZone: (text: string): string => `${quote(text)} is no time zone`,
  word: (text: string): string => `${quote(text)} is neither a weekday nor a shorthand such as daily`,
  parts: (text: string): string => `${quote(text)} has more parts than a date and a time`,
  date: (text: string): string => `${quote(text)} is neither a date (YYYY-MM-DD) nor a time (HH:MM)`,
  year: (text: string): string => `${quote(text)} is no year`,
  month: (text: string): string => `${quote(text)} is no month (1 to 12)`,
  day: (text: string, last: number): string => `${quote(text)} is no day (1 to ${last})`,
  time: (text: string): string => `${quote(text)} is no time (HH:MM or HH:MM:SS)`,
  hour: (text: string): string => `${quote(text)} is no hour (0 to 23)`,
  minute: (text: string): string => `${quote(text)} is no minute (0 to 59)`,
  second: (text: string): string => `${quote(text)} is no second (0 to 59)`,
};
