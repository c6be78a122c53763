// A shared object that is no plug-in.
int assay_has_no_plugin_here(void);
int assay_has_no_plugin_here(void) { return 1; }
