/**
 * First import of every file that uses @peculiar/x509. In a lazily imported module the bundler runs the ES modules
 * below it before a bare CommonJS import that stands above them, so that the polyfill would come too late; an ES
 * module of its own keeps its place.
 */
import "reflect-metadata";
