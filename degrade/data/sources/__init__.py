"""Where rows come from; each reader brings them as :class:`degrade.data.rows.Source` says."""
